'use strict';

const { parse } = require('./cron');
const { nextRun } = require('./next');

/** Return the next times at which a cron expression runs, in UTC. */
function nextRuns(expression, after, count = 1) {
  const fields = parse(expression);
  const runs = [];
  let last = after;
  for (let run = 0; run < count; run++) {
    last = nextRun(fields, last);
    runs.push(last);
    last = new Date(last.getTime() + 1000);
  }
  return runs;
}

module.exports = { nextRuns };
