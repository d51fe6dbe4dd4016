package fakegcs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// NewCertificate returns a server certificate for hosts, which are names and IP
// addresses, and the certificate authority that signed it. Clients trust the server
// if they trust caPEM, for example by SSL_CERT_FILE. The key of the authority is
// discarded. Both certificates expire after 30 days.
func NewCertificate(hosts ...string) (server tls.Certificate, caPEM []byte, err error) {
	now := time.Now()
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: new(big.Int).SetBytes(randomBytes(16)), Subject: pkix.Name{Organization: []string{"fakegcs"}, CommonName: name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(30 * 24 * time.Hour), BasicConstraintsValid: true,
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return server, nil, fmt.Errorf("fakegcs: make certificate: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return server, nil, fmt.Errorf("fakegcs: make certificate: %w", err)
	}
	ca := template("fakegcs CA")
	ca.IsCA, ca.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return server, nil, fmt.Errorf("fakegcs: make certificate: %w", err)
	}
	leaf := template("fakegcs")
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return server, nil, fmt.Errorf("fakegcs: make certificate: %w", err)
	}
	var out bytes.Buffer
	if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: caDER}); err != nil {
		return server, nil, fmt.Errorf("fakegcs: make certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der, caDER}, PrivateKey: key}, out.Bytes(), nil
}
