#!/bin/bash
cd /app && sh tests/run.sh
