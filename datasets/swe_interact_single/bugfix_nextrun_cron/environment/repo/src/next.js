'use strict';

const MINUTE = 60 * 1000;

function allows(values, value) {
  return values === null || values.has(value);
}

function matches(fields, date) {
  return (
    allows(fields.minute, date.getUTCMinutes()) &&
    allows(fields.hour, date.getUTCHours()) &&
    allows(fields.day, date.getUTCDate()) &&
    allows(fields.month, date.getUTCMonth()) &&
    allows(fields.weekday, date.getUTCDay())
  );
}

/** Return the next time after another at which something runs. */
function nextRun(fields, after) {
  let time = Math.ceil(after.getTime() / MINUTE) * MINUTE;
  while (!matches(fields, new Date(time))) {
    time += MINUTE;
  }
  return new Date(time);
}

module.exports = { nextRun };
