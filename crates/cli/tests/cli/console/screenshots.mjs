// screenshots.mjs <folder with node_modules> <chromium> <folder for pictures> <name=address>...: a picture of each
// address in two sizes, light and dark: <name>-1280-light.png and so on. Says which pages are wider than the screen.
import { createRequire } from "node:module";

const [installed, executablePath, pictures, ...pages] = process.argv.slice(2);
const { chromium } = createRequire(`${installed}/`)("playwright-core");

const SIZES = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];
const SCHEMES = ["light", "dark"];

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
let tooWide = 0;
try {
  for (const viewport of SIZES) {
    for (const colorScheme of SCHEMES) {
      const page = await browser.newPage({ viewport, colorScheme });
      for (const named of pages) {
        const [name, address] = [named.slice(0, named.indexOf("=")), named.slice(named.indexOf("=") + 1)];
        const path = `${pictures}/${name}-${viewport.width}-${colorScheme}.png`;
        await page.goto(address);
        await page.screenshot({ path, fullPage: process.env.FULL_PAGE === "1" });
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        console.log(wider > 0 ? `${path}: ${wider} pixels wider than the screen` : path);
        tooWide += wider > 0 ? 1 : 0;
      }
      await page.close();
    }
  }
} finally {
  await browser.close();
}
process.exitCode = tooWide > 0 ? 1 : 0;
