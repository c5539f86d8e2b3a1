#!/bin/bash
cd /app && node --test
