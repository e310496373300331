#!/bin/sh
# Makes the account and the directory of troupe-node.service. It does not start the node: `systemctl enable --now troupe-node` does.
set -e
systemd-sysusers troupe.conf
systemd-tmpfiles --create troupe.conf
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
