#!/bin/sh
# Makes deploy/secrets for compose.yaml: a certificate authority, a certificate of the servers s1, s2, s3 and o1, and a
# pair of keys for each user of nats/troupe.conf. It needs openssl and Go. It never replaces an existing deploy/secrets.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir secrets # fails if there is one
cd secrets
trap 'test $? = 0 || rm -rf "$PWD"' EXIT

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=troupe -keyout ca.key -out ca.crt 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=troupe-server -keyout server.key -out server.csr 2>/dev/null
printf 'subjectAltName=DNS:s1,DNS:s2,DNS:s3,DNS:o1,DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n' >server.ext
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile server.ext -out server.crt 2>/dev/null
rm server.csr server.ext

for role in setup node service client alice bob observer system; do
	go run github.com/nats-io/nkeys/nk@v0.4.16 -gen user >"$role.nk"
	name=$(echo "$role" | tr '[:lower:]' '[:upper:]')
	echo "TROUPE_${name}_NKEY=$(go run github.com/nats-io/nkeys/nk@v0.4.16 -inkey "$role.nk" -pubout)" >>keys.env
done
echo "TROUPE_OBSERVER_SEED=$(cat observer.nk)" >observer.env # o1 connects to s1 with it
# Containers run under other accounts and must read these; the directory is closed to the accounts of this machine.
chmod 644 ca.crt server.crt server.key setup.nk node.nk service.nk system.nk
echo "deploy/secrets is made: keep it out of any repository"
