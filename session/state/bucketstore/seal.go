package bucketstore

import (
	"bytes"
	"crypto/rand"
	"fmt"

	"gcsup/session/state"
)

// sealedHeader is the first line of a sealed upload. The nonce and the sealed bytes follow.
const sealedHeader = "gcsup sealed 1\n"

// encode returns the content of the object for a saved upload.
func (s *Store) encode(t *state.Upload) ([]byte, error) {
	plain, err := state.Encode(t)
	if err != nil || s.opts.AEAD == nil {
		return plain, err
	}
	out := append([]byte(sealedHeader), make([]byte, s.opts.AEAD.NonceSize())...)
	nonce := out[len(sealedHeader):]
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return s.opts.AEAD.Seal(out, nonce, plain, []byte(t.ID)), nil
}

// decode returns the saved upload of an upload from the content of its object.
func (s *Store) decode(id string, content []byte) (*state.Upload, error) {
	if len(content) == 0 {
		return nil, fmt.Errorf("%w: %s", state.ErrNotFound, id)
	}
	var t *state.Upload
	plain, err := s.unseal(id, content)
	if err == nil {
		t, err = state.Decode(plain)
	}
	if err == nil && t.ID != id {
		err = fmt.Errorf("%w: it has the ID of another upload", state.ErrCorrupt)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, s.spec(id).URL())
	}
	return t, nil
}

// unseal returns the plain bytes. A Store with a key refuses content that is not sealed, because
// any writer of the bucket could have forged it.
func (s *Store) unseal(id string, content []byte) ([]byte, error) {
	sealed, ok := bytes.CutPrefix(content, []byte(sealedHeader))
	switch {
	case !ok && s.opts.AEAD == nil:
		return content, nil
	case !ok, s.opts.AEAD == nil, len(sealed) < s.opts.AEAD.NonceSize():
		return nil, ErrSealed
	}
	n := s.opts.AEAD.NonceSize()
	plain, err := s.opts.AEAD.Open(nil, sealed[:n], sealed[n:], []byte(id))
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}
