// Tests of the numbers that the inspectors' page reads.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

// As a data URL, because Node.js may not treat the file extension as a module.
const source = readFileSync(new URL("../../crates/inspector/page/numbers.js", import.meta.url));
const { readNumber, readAmount, readWhole } = await import(`data:text/javascript;base64,${source.toString("base64")}`);

test("a number has one separator before its decimals, and thousands in groups of three digits", () => {
  for (const [text, number] of [
    ["", null], [" ", null], ["2,85", 2.85], ["2.85", 2.85], ["-6,1", -6.1], [",5", 0.5], ["3,", 3], ["1.234", 1.234],
    ["1.234,5", 1234.5], ["1,234.5", 1234.5], ["1.234.567", 1234567], ["1 234,5", 1234.5], ["12.345.678,25", 12345678.25],
    ["3.2.1", undefined], ["1,2,3", undefined], ["1.23.456", undefined], ["1.234,567,8", undefined], ["2,8 kN", undefined], ["-", undefined], ["1e3", undefined],
  ]) assert.equal(readNumber(text), number, text);
});

test("an amount may have its currency and has at most two decimals", () => {
  for (const [text, amount] of [
    ["", null], ["4500", "4500.00"], ["4.500", "4500.00"], ["4,500", "4500.00"], ["4.500,00", "4500.00"], ["4,500.50", "4500.50"], ["4500 TL", "4500.00"],
    ["4.500 ₺", "4500.00"], ["₺4.500", "4500.00"], ["4500 try", "4500.00"], ["1.234.567", "1234567.00"], ["12,5", "12.50"],
    ["45,1234", undefined], ["4.5.00", undefined], ["-1", undefined], ["4500 EUR", undefined],
  ]) assert.equal(readAmount(text), amount, text);
});

test("a whole number has no decimals", () => {
  for (const [text, number] of [
    ["", null], ["84210", 84210], ["84.210", 84210], ["84,210", 84210], ["84 210 km", 84210], ["1.234.567", 1234567],
    ["84210,5", undefined], ["1.234,567", undefined], ["84.21", undefined], ["-3", undefined],
  ]) assert.equal(readWhole(text), number, text);
});
