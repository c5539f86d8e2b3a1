'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { nextRuns } = require('..');

function runs(expression, after, count) {
  return nextRuns(expression, new Date(after), count).map((run) => run.toISOString().slice(0, 16));
}

test('every day', () => {
  assert.deepEqual(runs('30 6 * * *', '2026-01-05T09:00:00Z', 2), [
    '2026-01-06T06:30',
    '2026-01-07T06:30',
  ]);
});

test('steps', () => {
  assert.deepEqual(runs('*/15 * * * *', '2026-01-05T09:07:00Z', 2), [
    '2026-01-05T09:15',
    '2026-01-05T09:30',
  ]);
});

test('weekday', () => {
  assert.deepEqual(runs('0 12 * * 3', '2026-01-05T09:00:00Z', 1), ['2026-01-07T12:00']);
});

test('errors', () => {
  assert.throws(() => runs('61 * * * *', '2026-01-05T09:00:00Z', 1), /bad minute: 61/);
  assert.throws(() => runs('* * *', '2026-01-05T09:00:00Z', 1), /expected 5 fields, got 3/);
});
