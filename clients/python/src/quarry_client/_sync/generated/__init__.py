# Written by scripts/python-client.ts. Do not edit: npm run clients
