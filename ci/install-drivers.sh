#!/bin/sh
# Installs the drivers that the tests of `pagemill serve` compare: psycopg and SQLAlchemy for Python, PostgreSQL's for Java, and
# node-postgres. Debian's packages, or npm's where Node came with one of its own. Safe to run again; what cannot be installed is
# said, and so is each test that is skipped for it.
set -eu

node_postgres=8.23.1
cache="$HOME/.cache/pagemill-test/node"

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# install PACKAGE...: all of them, or none.
install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >/dev/null
}

# has COMMAND...: whether it succeeds; what it prints is of no interest.
has() {
    "$@" >/dev/null 2>&1
}

has_python() {
    has /usr/bin/python3 -c 'import psycopg, psycopg2, sqlalchemy'
}

has_java() {
    java --list-modules 2>/dev/null | grep -q jdk.compiler && [ -e /usr/share/java/postgresql.jar ]
}

has_node() {
    has env NODE_PATH="$cache/node_modules:/usr/share/nodejs" node -e "require('pg')"
}

if has_python && has_java && has_node; then
    echo "the drivers are already installed"
    exit 0
fi
as_root apt-get update -q >/dev/null || echo "SKIPPED: no news of Debian's packages"
has_python || install python3-psycopg python3-psycopg2 python3-sqlalchemy ||
    echo "SKIPPED: psycopg and SQLAlchemy could not be installed"
has_java || install default-jdk-headless libpostgresql-jdbc-java ||
    echo "SKIPPED: PostgreSQL's driver for Java could not be installed"
if ! has_node; then
    if command -v npm >/dev/null; then
        mkdir -p "$cache"
        npm install --silent --no-audit --no-fund --prefix "$cache" "pg@$node_postgres" ||
            echo "SKIPPED: node-postgres could not be installed"
    else
        install node-pg || echo "SKIPPED: node-postgres could not be installed"
    fi
fi
