#!/bin/sh
echo 'Hello, harbor!' > /app/greeting.txt
