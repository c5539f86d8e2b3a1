#!/usr/bin/env node
'use strict';

const { nextRuns } = require('../src');

const USAGE = 'usage: nextrun EXPRESSION [--after TIME] [--count N]\n';

function main(words) {
  const options = { after: new Date(), count: 1 };
  let expression;
  for (let at = 0; at < words.length; at++) {
    if (words[at] === '--after') {
      options.after = new Date(words[++at]);
    } else if (words[at] === '--count') {
      options.count = Number(words[++at]);
    } else {
      expression = words[at];
    }
  }
  if (expression === undefined) {
    process.stderr.write(USAGE);
    return 2;
  }
  try {
    for (const run of nextRuns(expression, options.after, options.count)) {
      process.stdout.write(`${run.toISOString().slice(0, 16)}Z\n`);
    }
  } catch (problem) {
    process.stderr.write(`nextrun: ${problem.message}\n`);
    return 2;
  }
  return 0;
}

process.exitCode = main(process.argv.slice(2));
