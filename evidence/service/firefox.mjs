// The analyst's journey in Firefox, over WebDriver BiDi: from signing in to a release, its curves and a file.
// node firefox.mjs ADDRESS TOKEN SCREENSHOTS BROWSER; prints JSON. PUPPETEER names the folder that puppeteer-core is in.
import { createRequire } from "node:module";
import path from "node:path";

const [address, token, folder, executablePath] = process.argv.slice(2);
const require = createRequire(path.join(process.env.PUPPETEER, "package.json"));
const puppeteer = require("puppeteer-core");
const browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true });
const problems = [];
const seen = [];

function watch(page) {
  page.on("console", (message) => { if (message.type() === "error") problems.push(message.text()); });
  page.on("pageerror", (error) => problems.push(String(error)));
}

async function keep(page, name) {
  const wide = await page.evaluate("document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth");
  if (wide > 0) problems.push(`${name} is ${wide} pixels too wide`);
  await page.screenshot({ path: path.join(folder, `firefox-${name}.png`) });
  seen.push(name);
}

async function press(page, words) {
  const target = await page.waitForSelector(`::-p-xpath(//*[self::a or self::button][starts-with(normalize-space(.), "${words}")])`);
  await target.click();
}

async function until(page, what) {
  await page.waitForFunction(what, { timeout: 60000 });
}

async function journey(name, width, height) {
  const page = await browser.newPage();
  watch(page);
  await page.setViewport({ width, height });
  const tag = (view) => `${view}-${name}`;
  await page.goto(address);
  if (!(await page.$("header.top"))) {
    await page.type("#token", token);
    await press(page, "Sign in");
    await until(page, "location.pathname === '/datasets'");
  }
  await keep(page, tag("data-sets"));
  await press(page, "Plan a release");
  await page.waitForSelector("#plan-plot canvas");
  await page.select("#kind", "cate");
  await page.$eval("#epsilon", (field) => {
    field.value = "1.5";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await until(page, "document.body.innerText.includes('ε = 1.5:')");
  await keep(page, tag("plan"));
  await press(page, "Ask for this release");
  await until(page, "location.pathname.endsWith('/request')");
  await press(page, "Spend");
  await until(page, "/^\\/releases\\/[0-9a-f]+$/.test(location.pathname)");
  await page.waitForSelector(".forest");
  await keep(page, tag("release"));
  await press(page, "Explore the effects");
  await page.waitForSelector("#answer .estimate");
  await page.waitForSelector("[data-plot] canvas");
  await page.focus("[data-plot]");
  const before = await page.$eval("[data-plot]", (each) => each.getAttribute("aria-valuetext"));
  await page.keyboard.press("End");
  const after = await page.$eval("[data-plot]", (each) => each.getAttribute("aria-valuetext"));
  if (!after || after === before) problems.push("arrow keys do not read a curve");
  await keep(page, tag("explore"));
  await page.close();
}

try {
  await journey("desktop", 1100, 760);
  await journey("phone", 390, 844);
} catch (error) {
  problems.push(String(error));
}
const version = await browser.version();
await browser.close();
console.log(JSON.stringify({ version, views: seen, problems }));
process.exit(problems.length ? 1 : 0);
