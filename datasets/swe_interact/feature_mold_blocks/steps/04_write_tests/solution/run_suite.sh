#!/bin/bash
cd /app && lua5.4 tests/run.lua
