// usage: node shoot.mjs DASHBOARD OUT.png [QUERY]
// Photographs one dashboard of `vite preview` (BASE_URL, by default http://127.0.0.1:19980). Prints what the page asked
// and showed, as JSON, then the browser's complaints. Exits 1 if a panel or the page is in error.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { chromium } from 'playwright-core';

const [dashboard = 'apu-overview', out = 'shots/out.png', query = ''] = process.argv.slice(2);
const base = process.env.BASE_URL || 'http://127.0.0.1:19980';
const WIDTH = 1600;
const HARMLESS = /\/public\/fonts\/|Failed to load resource|falling back|angle-double-left/;

function listen(page) {
  const complaints = [];
  const note = (text) => HARMLESS.test(text) || complaints.push(text.slice(0, 800));
  page.on('console', (m) => ['error', 'warning'].includes(m.type()) && note(`${m.type()}: ${m.text()}`));
  page.on('pageerror', (e) => note(`pageerror: ${e.stack || e.message}`));
  page.on('requestfailed', (r) => note(`requestfailed: ${r.url()}`));
  page.on('response', (r) => r.status() >= 400 && note(`${r.status()} ${r.url()}`));
  return complaints;
}

// Runs in the page.
function look() {
  const texts = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent);
  return {
    boot: window.__bootError,
    queries: window.__queries,
    nodata: texts('[data-testid=panel-nodata]'),
    errors: texts('[data-testid=panel-error]'),
    titles: texts('section h2, [data-testid*="Panel header"] h2'),
    height: document.documentElement.scrollHeight,
  };
}

async function photograph(page) {
  await page.goto(`${base}/?dash=${dashboard}&${query}`, { waitUntil: 'load' });
  await page.waitForFunction(() => window.__scene || window.__bootError, null, { timeout: 30000 });
  await page.waitForLoadState('networkidle');
  await page.waitForTimeout(1500);
  const seen = await page.evaluate(look);
  await page.setViewportSize({ width: WIDTH, height: Math.max(600, Math.min(6000, seen.height)) });
  await page.waitForTimeout(700);
  mkdirSync(dirname(out), { recursive: true });
  await page.screenshot({ path: out });
  return seen;
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--force-device-scale-factor=1'],
});
try {
  const page = await browser.newPage({ viewport: { width: WIDTH, height: 1000 } });
  const complaints = listen(page);
  const seen = await photograph(page);
  console.log(JSON.stringify(seen, null, 1));
  console.log(complaints.join('\n'));
  process.exitCode = seen.boot || seen.errors.length ? 1 : 0;
} finally {
  await browser.close();
}
