import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PlatformClient } from '@archastro/sdk';
import { AutomationsClient, graphOf, type Run } from '../support/automations.ts';
import type { TestWorld } from '../support/provisioner.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
