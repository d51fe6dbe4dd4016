package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/require"
)

// exportedDoc returns an export of an upload of 20 bytes.
func exportedDoc(t *testing.T, endpoint, source string, spec map[string]any) []byte {
	t.Helper()
	token, err := json.Marshal(map[string]any{
		"id": "0123", "endpoint": endpoint, "spec": spec, "created": time.Now(), "source_path": source,
		"session_uri": endpoint + "/upload/storage/v1/b/evil-bucket/o?upload_id=secret",
		"source":      map[string]any{"size": 20}, "checkpoints": nil,
	})
	require.NoError(t, err)
	sum := sha256.Sum256(token)
	return fmt.Appendf(nil, `{"v":1,"sha256":%q,"upload":%s}`, hex.EncodeToString(sum[:]), token)
}

// TestImportUntrusted checks an export from an untrusted source: it cannot choose
// the file, its names cannot control the terminal or a shell, and unusual options
// of the object are shown.
func TestImportUntrusted(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	t.Setenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "")
	source := filepath.Join(t.TempDir(), "source")
	require.NoError(t, os.WriteFile(source, make([]byte, 20), 0o600))
	plain := map[string]any{"bucket": "evil-bucket", "object": "o", "content_type": "text/plain", "if_generation_match": 0, "no_clobber": true}
	const real = "https://storage.googleapis.com"
	for _, c := range []struct {
		name     string
		endpoint string
		spec     map[string]any
		args     []string
		code     int
		want     string // standard error
		not      string
	}{
		{"as usual", real, plain, []string{source}, exit.OK, source + " to gs://evil-bucket/o, started at " + real, "warning"},
		{"a directory", real, plain, []string{"."}, exit.NoInput, "a directory", "cp does not"},
		{"its file", real, plain, nil, exit.Usage, "want SOURCE", ""},
		{"a shell's words", "http://x;reboot", plain, []string{source}, exit.OK, "if you trust it with your credentials, give --endpoint='http://x;reboot'", "=http"},
		{"escapes", real, map[string]any{"bucket": "evil-bucket", "object": "a\x1b[2J\u202eb"}, []string{source}, exit.OK, "a?[2J?b", "\x1b"},
		{"a public object", real, map[string]any{"bucket": "evil-bucket", "object": "o", "predefined_acl": "publicRead"}, []string{source}, exit.OK, `warning: it has object settings that you did not give: {"bucket":"evil-bucket","object":"o","predefined_acl":"publicRead"}`, ""},
		{"another bucket's session", real, map[string]any{"bucket": "own-bucket", "object": "o"}, []string{source}, exit.Config, "not an upload path of bucket", ""},
		{"no URL", "http://\n x", plain, []string{source}, exit.IO, "endpoint", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(process.StateDirEnv, filepath.Join(t.TempDir(), "state"))
			var out, stderr bytes.Buffer
			in := bytes.NewReader(exportedDoc(t, c.endpoint, source, c.spec))
			code := execute(t.Context(), append([]string{"uploads", "import"}, c.args...), stdio{in, &out, &stderr})
			if code != c.code || !strings.Contains(stderr.String(), c.want) || c.not != "" && strings.Contains(stderr.String(), c.not) {
				t.Errorf("exit code %d, want %d; standard error, want %q and not %q:\n%q", code, c.code, c.want, c.not, stderr.String())
			}
			if all := out.String() + stderr.String(); strings.Contains(all, "secret") {
				t.Errorf("output contains the session URI: %s", all)
			}
		})
	}
}
