package fakegcs

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
)

// encryptionKey reads the headers of a customer-supplied key,
// https://cloud.google.com/storage/docs/encryption/customer-supplied-keys. It
// returns nil if there are none.
func encryptionKey(h http.Header, prefix string) (*Encryption, *apiError) {
	algorithm, key, sum := h.Get(prefix+"Algorithm"), h.Get(prefix+"Key"), h.Get(prefix+"Key-Sha256")
	if algorithm == "" && key == "" && sum == "" {
		return nil, nil
	}
	if algorithm != "AES256" {
		return nil, refuse(http.StatusBadRequest, "customerEncryptionAlgorithmIsInvalid", "The encryption algorithm is not valid. It must be AES256.")
	}
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(raw) != 32 {
		return nil, refuse(http.StatusBadRequest, "customerEncryptionKeyFormatIsInvalid", "The encryption key is not valid. It must be the base64 of 32 bytes.")
	}
	want := sha256.Sum256(raw)
	if base64.StdEncoding.EncodeToString(want[:]) != sum {
		return nil, refuse(http.StatusBadRequest, "customerEncryptionKeySha256IsInvalid", "Provided encryption key SHA256 hash does not match key.")
	}
	return &Encryption{algorithm, sum}, nil
}

// checkRead returns an error unless the headers have the customer-supplied key of o, if
// it has one.
func checkRead(o *Object, h http.Header, prefix string) *apiError {
	key, err := encryptionKey(h, prefix)
	if err != nil {
		return err
	}
	if o.CustomerEncryption != nil && key == nil {
		return refuse(http.StatusBadRequest, "resourceIsEncryptedWithCustomerEncryptionKey", "The target object is encrypted by a customer-supplied encryption key.")
	}
	return checkKey(key, o)
}

// checkKey returns an error for a key other than that of o. A nil key is accepted,
// because metadata can be read without one.
func checkKey(key *Encryption, o *Object) *apiError {
	switch {
	case key == nil:
		return nil
	case o.CustomerEncryption == nil:
		return refuse(http.StatusBadRequest, "resourceNotEncryptedWithCustomerEncryptionKey", "The target object is not encrypted by a customer-supplied encryption key.")
	case key.KeySHA256 != o.CustomerEncryption.KeySHA256:
		return refuse(http.StatusBadRequest, "customerEncryptionKeyIsIncorrect", "The provided encryption key is incorrect.")
	}
	return nil
}
