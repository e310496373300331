package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/troupe-run/troupe/internal/bus"
)

// makeKeys makes a pair for each role of deploy/nats/troupe.conf, and for its two owners.
func (s *servers) makeKeys() error {
	for _, role := range []bus.Role{roleSetup, bus.RoleNode, bus.RoleService, bus.RoleClient, "alice", "bob", bus.RoleObserver, roleSystem} {
		pair, err := nkeys.CreateUser()
		if err != nil {
			return err
		}
		public, err := pair.PublicKey()
		if err != nil {
			return err
		}
		seed, err := pair.Seed()
		if err != nil {
			return err
		}
		s.seeds[role] = filepath.Join(s.dir, string(role)+".nk")
		if err := os.WriteFile(s.seeds[role], seed, 0o600); err != nil {
			return err
		}
		s.keys = append(s.keys, "TROUPE_"+strings.ToUpper(string(role))+"_NKEY="+public)
	}
	return nil
}

// makeCertificates makes an authority and one certificate for all servers, by
// the names that deploy/nats/server.conf gives the files.
func (s *servers) makeCertificates() error {
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a scenario"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := s.signCertificate("ca", authority, authority, own, own); err != nil {
		return err
	}
	server := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server of a scenario"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, IPAddresses: []net.IP{net.ParseIP(loopback)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return s.signCertificate("server", server, authority, key, own)
}

// signCertificate writes name.crt and name.key.
func (s *servers) signCertificate(name string, cert, authority *x509.Certificate, key, by *ecdsa.PrivateKey) error {
	signed, err := x509.CreateCertificate(rand.Reader, cert, authority, &key.PublicKey, by)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	write := func(suffix, kind string, der []byte) error {
		return os.WriteFile(filepath.Join(s.dir, name+suffix), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	return errors.Join(write(".crt", "CERTIFICATE", signed), write(".key", "PRIVATE KEY", secret))
}
