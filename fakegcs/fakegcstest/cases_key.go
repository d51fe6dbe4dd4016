package fakegcstest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
)

const keyDocs = docs + "encryption/customer-supplied-keys"

// encryptionKey is a customer-supplied key of one repeated byte, with its headers.
type encryptionKey struct{ text, hash string }

func newKey(b byte) encryptionKey {
	raw := bytes.Repeat([]byte{b}, 32)
	sum := sha256.Sum256(raw)
	return encryptionKey{base64.StdEncoding.EncodeToString(raw), base64.StdEncoding.EncodeToString(sum[:])}
}

func (k encryptionKey) headers() []string { return k.after("x-goog-encryption-") }

// source returns the headers for the source of a copy.
func (k encryptionKey) source() []string { return k.after("x-goog-copy-source-encryption-") }

func (k encryptionKey) after(prefix string) []string {
	return []string{prefix + "algorithm: AES256", prefix + "key: " + k.text, prefix + "key-sha256: " + k.hash}
}

// keyCases returns the facts about customer-supplied encryption keys.
func keyCases() []Case {
	key, other := newKey(1), newKey(2)
	insertKeyed := insert("-k", 0, 9).with(key.headers()...).match(text("keySha256", quoted(key.hash)), text("encryptionAlgorithm", "AES256"), text("crc32c", "{crc32c:9}"))
	const (
		isEncrypted  = `(?i)resourceIsEncryptedWithCustomerEncryptionKey|encrypted by a customer-supplied`
		notEncrypted = `(?i)resourceNotEncryptedWithCustomerEncryptionKey|not encrypted with a customer-supplied|not encrypted by a customer-supplied`
		isIncorrect  = `(?i)customerEncryptionKeyIsIncorrect|encryption key is incorrect`
	)
	return []Case{
		{
			Name: "key-read", Fact: "The bytes of an object with a customer-supplied key are read with that key only.", Source: status, None: true,
			Steps: []Step{
				insertKeyed,
				read("-k?alt=media", small(0, 9)).with(key.headers()...),
				get("-k?alt=media", 400).match(isEncrypted), get("-k?alt=media", 400).with(other.headers()...).match(isIncorrect),
				xmlReq("GET", "-k", 200).with(key.headers()...).text(small(0, 9)),
				xmlReq("GET", "-k", 400).match(code("ResourceIsEncryptedWithCustomerEncryptionKey")), xmlReq("GET", "-k", 400).with(other.headers()...).match(code("CustomerEncryptionKeyIsIncorrect")),
			},
		}, {
			Name: "key-metadata", Fact: "The metadata of an object with a customer-supplied key is read without the key, with the key's hash and without checksums of the bytes.", Source: keyDocs, None: true,
			Steps: []Step{
				insertKeyed,
				get("-k", 200).match(text("keySha256", quoted(key.hash)), text("size", "9"), absent("crc32c"), absent("md5Hash")),
				get("-k", 200).with(key.headers()...).match(text("crc32c", "{crc32c:9}"), text("md5Hash", "{md5:9}")),
				get("-k", 400).with(other.headers()...),
				Step{Method: "GET", Path: "/storage/v1/b/{bucket}/o?prefix={object}", Status: 200}.with(key.headers()...).match(text("name", "{name}-k"), absent("crc32c"), absent("md5Hash")),
				patch("-k", `{"contentType":"text/x"}`, 200).match(text("contentType", "text/x"), absent("crc32c")),
				del("-k", 204),
			},
		}, {
			Name: "key-not-needed", Fact: "A key for an object that has none is refused.", Source: status, Size: 9,
			Steps: []Step{insert("", 0, 9), get("?alt=media", 400).with(key.headers()...).match(notEncrypted), get("", 400).with(key.headers()...).match(notEncrypted)},
		}, {
			Name: "key-malformed", Fact: "A customer-supplied key has 32 bytes, its hash and the algorithm AES256.", Source: status, None: true,
			Steps: []Step{
				insert("", 0, 9).with(key.headers()...).with("x-goog-encryption-key-sha256: " + other.hash).status(400).match("(?i)customerEncryptionKeySha256IsInvalid"),
				insert("", 0, 9).with(key.headers()...).with("x-goog-encryption-key: AAAA").status(400).match("(?i)customerEncryptionKey.*IsInvalid"),
				insert("", 0, 9).with(key.headers()...).with("x-goog-encryption-algorithm: ROT13").status(400).match("(?i)customerEncryptionAlgorithmIsInvalid"),
			},
		}, {
			Name: "key-resumable", Fact: "A resumable upload takes the key at its start; the session needs none.", Source: measured + "src/storage/encryption.zig", None: true,
			Steps: []Step{
				func() Step { s := start(key.headers()...); s.Path += "-k"; return s }(),
				chunk(0, q, "*", 308, "262143"), query("*", 308, "262143"), chunk(q, q+1, "262145", 200, ""),
				get("-k", 200).with(key.headers()...).match(text("keySha256", quoted(key.hash)), text("crc32c", "{crc32c:262145}")),
				get("-k?alt=media", 400).match(isEncrypted),
			},
		}, {
			Name: "key-rewrite", Fact: "A rewrite can change the key and take it away; it needs the one of the source.", Source: docs + "encryption/using-customer-supplied-keys", Size: 9,
			Steps: []Step{
				insertKeyed,
				copyTo("rewriteTo", "-k", "", `{}`, 400), copyTo("rewriteTo", "-k", "", `{}`, 400).with(other.source()...), get("", 404),
				copyTo("rewriteTo", "-k", "-m", `{}`, 200).with(key.source()...).with(other.headers()...).match(text("keySha256", quoted(other.hash))),
				read("-m?alt=media", small(0, 9)).with(other.headers()...), get("-m?alt=media", 400).with(key.headers()...),
				copyTo("rewriteTo", "-m", "", `{}`, 200).with(other.source()...).match(absent("customerEncryption")),
			},
		}, {
			Name: "key-compose", Fact: "Compose needs the key of its sources, which is the composite's.", Source: keyDocs, None: true,
			Steps: []Step{
				insertKeyed,
				sendJSON("POST", objectPath+"-c/compose", `{"sourceObjects":[{"name":"{name}-k"}],"destination":{"contentType":"text/x"}}`, 400),
				sendJSON("POST", objectPath+"-c/compose", `{"sourceObjects":[{"name":"{name}-k"}],"destination":{"contentType":"text/x"}}`, 200).with(key.headers()...).match(text("keySha256", quoted(key.hash))),
				read("-c?alt=media", small(0, 9)).with(key.headers()...), get("-c?alt=media", 400),
			},
		},
	}
}
