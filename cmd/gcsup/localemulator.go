package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"

	"gcsup/fakegcs"
	"gcsup/fakegcs/pipenet"
	"gcsup/upload/gcs"
)

// localEmulator is the emulator of --emulator: it serves this process alone,
// over a network inside it.
type localEmulator struct {
	*emulated
	dir       string
	endpoint  string
	transport http.RoundTripper
}

// startLocal starts an emulator on dir. The endpoint is a name for the
// directory and reaches nothing else, so that an upload has the same ID in the
// next process: https://www.rfc-editor.org/rfc/rfc6761#section-6.4.
func startLocal(dir string) (*localEmulator, error) {
	e, err := newEmulated(fakegcs.Options{Dir: dir, CreateBuckets: true})
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	sum := sha256.Sum256([]byte(dir))
	ln, dial := pipenet.Listen()
	e.serve(ln)
	transport := gcs.NewTransport()
	transport.Proxy = nil
	transport.DialContext = dial
	return &localEmulator{
		emulated: e, dir: dir, transport: transport,
		endpoint: "http://emulator-" + hex.EncodeToString(sum[:4]) + ".invalid",
	}, nil
}

// where says where the objects are, and how to get at them.
func (e *localEmulator) where() string {
	return fmt.Sprintf("the emulator keeps its objects in %s; gcsup emulator --dir %s serves them", e.dir, shellQuote(e.dir))
}

func (e *localEmulator) close() { _ = e.emulated.close() }
