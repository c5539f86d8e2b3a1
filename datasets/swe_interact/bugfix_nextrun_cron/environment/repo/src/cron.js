'use strict';

const FIELDS = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12 },
  { name: 'weekday', min: 0, max: 6 },
];

/** Return the values that a field allows, or null if it allows all. */
function parseField(text, { name, min, max }) {
  if (text === '*') {
    return null;
  }
  const values = new Set();
  for (const part of text.split(',')) {
    const [range, step] = part.split('/');
    let from = min;
    let to = max;
    if (range !== '*') {
      const [first, last] = range.split('-');
      from = parseInt(first);
      to = last ? parseInt(last) : from;
    }
    if (from < min || to > max) {
      throw new Error(`bad ${name}: ${text}`);
    }
    for (let value = from; value <= to; value++) {
      if (!step || value % parseInt(step) === 0) {
        values.add(value);
      }
    }
  }
  if (values.size === 0) {
    throw new Error(`bad ${name}: ${text}`);
  }
  return values;
}

/** Return an expression as sets of values, by field. */
function parse(expression) {
  const parts = expression.split(' ');
  if (parts.length !== 5) {
    throw new Error(`expected 5 fields, got ${parts.length}`);
  }
  const fields = {};
  for (const [at, field] of FIELDS.entries()) {
    fields[field.name] = parseField(parts[at], field);
  }
  return fields;
}

module.exports = { parse };
