package fleet

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
)

// keyObject is the name, below the prefix of the saved uploads, of an object that is sealed with
// their key.
const keyObject = "fleet-key"

// keyText is the content of keyObject before it is sealed.
const keyText = "gcsup-fleet key 1\n"

// checkKey compares the key of the saved uploads with that of the first worker, which made
// keyObject. Otherwise a worker with a wrong key fails only when it meets a saved upload, and no
// other worker can read those that it saves. The error wraps ErrStateKey.
func (w *Worker) checkKey(ctx context.Context, b *stateBucket) error {
	for {
		content, _, err := b.read(ctx, keyObject)
		if err == nil {
			return w.compareKey(b.url(keyObject), content)
		}
		if !errors.Is(err, errNoObject) {
			return err
		}
		if err = b.write(ctx, keyObject, w.sealKeyText(), new(int64)); !errors.Is(err, errGeneration) {
			return err
		}
	}
}

// sealKeyText returns the content of keyObject.
func (w *Worker) sealKeyText() []byte {
	if w.opts.AEAD == nil {
		return []byte(keyText)
	}
	nonce := make([]byte, w.opts.AEAD.NonceSize())
	_, _ = rand.Read(nonce)
	return w.opts.AEAD.Seal(nonce, nonce, []byte(keyText), []byte(keyObject))
}

// compareKey returns an error unless content was made with the key of this worker.
func (w *Worker) compareKey(url string, content []byte) error {
	plain := content
	if a := w.opts.AEAD; a != nil {
		plain = nil
		if n := a.NonceSize(); len(content) >= n {
			plain, _ = a.Open(nil, slices.Clone(content[:n]), content[n:], []byte(keyObject))
		}
	}
	if bytes.Equal(plain, []byte(keyText)) {
		return nil
	}
	return fmt.Errorf("%w; if the key was changed for all workers, delete %s", ErrStateKey, url)
}
