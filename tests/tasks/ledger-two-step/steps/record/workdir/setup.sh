chmod -R a+rwX /app
