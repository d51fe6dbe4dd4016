package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"gcsup/internal/failure"
)

const stateDirEnv = "GCSUP_STATE_DIR"

// stateDir returns the state directory: that of the flag, of the environment, or
// the platform's default. For XDG_STATE_HOME see
// https://specifications.freedesktop.org/basedir-spec/latest/.
func stateDir(flag string) (string, error) {
	switch {
	case flag != "":
		return filepath.Abs(flag)
	case os.Getenv(stateDirEnv) != "":
		return filepath.Abs(os.Getenv(stateDirEnv))
	}
	switch runtime.GOOS {
	case "windows":
		return appDir(os.UserCacheDir()) // %LocalAppData%, which does not roam
	case "darwin":
		return appDir(os.UserConfigDir()) // ~/Library/Application Support
	}
	// The specification requires that relative paths are ignored.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return appDir(dir, nil)
	}
	home, err := os.UserHomeDir()
	return appDir(filepath.Join(home, ".local", "state"), err)
}

func appDir(dir string, err error) (string, error) {
	if err != nil {
		return "", failure.WithKind(fmt.Errorf("no default for the state directory; use --state-dir to name one: %w", err), failure.ErrConfig)
	}
	return filepath.Join(dir, "gcsup"), nil
}
