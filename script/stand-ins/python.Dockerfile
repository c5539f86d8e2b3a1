# Stands in for python:3.12-slim where no registry can be reached: Debian's own Python (3.11),
# under the names that the real image has (python, pip), pip free to install into it.
FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-pip python3-venv ca-certificates \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /usr/lib/python3*/EXTERNALLY-MANAGED \
    && for name in python pydoc; do ln -s /usr/bin/${name}3 /usr/local/bin/${name}; done \
    && ln -s /usr/bin/python3 /usr/local/bin/python3 \
    && ln -s /usr/bin/pip3 /usr/local/bin/pip && ln -s /usr/bin/pip3 /usr/local/bin/pip3
ENV LANG=C.UTF-8 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
LABEL pytest-harbor.stand-in=true
CMD ["python3"]
