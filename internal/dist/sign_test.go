package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/internal/require"
)

func TestSign(t *testing.T) {
	required(t, "minisign", "minisign")
	dir := t.TempDir()
	public, secret, sums := filepath.Join(dir, "public"), filepath.Join(t.TempDir(), "secret"), filepath.Join(dir, sumsName)
	command(t, dir, "minisign", "-G", "-W", "-p", public, "-s", secret)
	require.NoError(t, os.WriteFile(sums, []byte("00  gcsup\n"), 0o666))
	t.Chdir(filepath.Dir(secret))
	require.NoError(t, checkKey("secret"))
	require.NoError(t, sign("secret", sums, "gcsup v1.0.0"))
	if out := command(t, dir, "minisign", "-V", "-p", public, "-m", sums); !strings.Contains(out, "Trusted comment: gcsup v1.0.0\n") {
		t.Errorf("minisign -V: %s", out)
	}
	require.NoError(t, os.WriteFile(sums, []byte("01  gcsup\n"), 0o666))
	if out, err := exec.Command("minisign", "-V", "-p", public, "-m", sums).CombinedOutput(); err == nil {
		t.Errorf("the signature of other checksums is valid: %s", out)
	}
	require.NoError(t, writeSums(dir))
	if text, err := os.ReadFile(sums); err != nil || strings.Contains(string(text), signatureName) || !strings.Contains(string(text), "  public\n") {
		t.Errorf("new checksums: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, signatureName)); err == nil {
		t.Error("the signature of the old checksums still exists")
	}
	if err := checkKey(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "-sign-key: ") {
		t.Errorf("a key that does not exist: %v", err)
	}
	for _, wrong := range []string{public, dir, sums} {
		if err := checkKey(wrong); err == nil || !strings.Contains(err.Error(), "-sign-key: ") {
			t.Errorf("%s as the key: %v", wrong, err)
		}
	}
	t.Setenv("PATH", dir)
	if err := checkKey(secret); err == nil || !strings.Contains(err.Error(), "apt-get install minisign") {
		t.Errorf("without minisign: %v", err)
	}
}
