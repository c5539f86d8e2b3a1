#!/bin/bash
cd /app && prove -Q t
