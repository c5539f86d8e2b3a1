# Stands in for ubuntu:24.04 where no registry can be reached: Debian bookworm, and it says so in
# /etc/os-release; with the user that the real image has.
FROM debian:bookworm-slim
RUN useradd --create-home --shell /bin/bash --uid 1000 ubuntu
LABEL pytest-harbor.stand-in=true
CMD ["/bin/bash"]
