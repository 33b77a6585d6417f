import type { Locator, Page } from 'playwright-core';
import type { TestApp } from './provisioner.ts';
import type { TestServer } from './server.ts';

/** A picture for screenshots. */
export const chart = Buffer.from(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 360" width="640" height="360">
  <rect width="640" height="360" fill="#eaf4f1"/>
  <path d="M0 240C80 120 160 120 240 240S400 360 480 240 600 130 640 170V360H0Z" fill="#0f6b5c" opacity=".85"/>
  <path d="M0 270C80 170 160 170 240 270S400 370 480 270 600 170 640 210V360H0Z" fill="#0b5347"/>
  <circle cx="520" cy="80" r="34" fill="#f2c14e"/>
  <script>document.documentElement.setAttribute('data-ran', 'yes')</script>
</svg>`,
);

/** Creates an app with realistic names. */
export async function loadApp({ provision, db }: TestServer, name = 'Harbour authority'): Promise<TestApp> {
  const app = await provision.app();
  await db`update apps set name = ${name} where id = ${app.app.uuid}`;
  await db`update developers set name = 'Mara Lind' where id = ${app.developerUuid}`;
  return app;
}

/** Chooses a user, agent, team or org as a person does: by its name. */
export async function choosePrincipal(page: Page, control: Locator, name: string): Promise<void> {
  await control.click();
  await page.getByPlaceholder('Name, e-mail or id').fill(name);
  await page.getByRole('option', { name }).first().click();
}

/** The switch of app, sandbox and organisation. */
export const placeOf = (page: Page): Locator =>
  page.getByRole('button', { name: /change app, sandbox or organisation$/ });

/** Chooses an app, a sandbox or an organisation by its name. */
export async function choosePlace(page: Page, name: string): Promise<void> {
  await placeOf(page).click();
  await page.getByPlaceholder('Find an app, sandbox or organisation').fill(name);
  await page.getByRole('option', { name }).first().click();
}

export async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Account:/ }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
}
