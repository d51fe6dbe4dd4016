package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"gcsup/fakegcs"
	"gcsup/fakegcs/memnet"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/shell"
	"gcsup/internal/emulator"
	"gcsup/upload"
)

// localEmulator is the emulator of --emulator. It serves this process only, over
// an in-memory network.
type localEmulator struct {
	*emulator.Server
	dir       string
	endpoint  string
	transport http.RoundTripper
}

// startLocal starts an emulator on dir.
func startLocal(dir string) (*localEmulator, error) {
	e, err := emulator.New(fakegcs.Options{Dir: dir, CreateBuckets: true})
	if err != nil {
		return nil, emulatorInUse(err)
	}
	ln, dial := memnet.Listen()
	e.Serve(ln)
	transport := upload.NewTransport(nil)
	transport.Proxy = nil
	transport.DialContext = dial
	return &localEmulator{
		Server: e, dir: realPath(dir), transport: transport,
		endpoint: localEndpoint(dir),
	}, nil
}

const (
	localPrefix = "http://emulator-"
	localSuffix = ".invalid"
)

// localEndpoint returns the endpoint of the emulator in dir. No host has this name
// (https://www.rfc-editor.org/rfc/rfc6761#section-6.4). It depends on dir only, so
// that an upload has the same ID in the next process.
func localEndpoint(dir string) string {
	sum := sha256.Sum256([]byte(realPath(dir)))
	return localPrefix + hex.EncodeToString(sum[:4]) + localSuffix
}

// isLocal reports whether endpoint was made by localEndpoint.
func isLocal(endpoint string) bool {
	return strings.HasPrefix(endpoint, localPrefix) && strings.HasSuffix(endpoint, localSuffix)
}

// endpointText returns the text that names an endpoint to the user: a URL, or
// --emulator.
func endpointText(endpoint string) string {
	if isLocal(endpoint) {
		return "--emulator"
	}
	return endpoint
}

func realPath(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// location returns a message that names the directory of the objects and the
// command that serves them.
func (e *localEmulator) location() string {
	return fmt.Sprintf("the emulator keeps its objects in %s; %s emulator --dir %s serves them", e.dir, process.Words(), shell.Quote(e.dir))
}

func (e *localEmulator) close() { _ = e.Server.Close() }
