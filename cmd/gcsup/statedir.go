package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

const stateDirEnv = "GCSUP_STATE_DIR"

// stateDir is where this program keeps what must survive it: the flag, the
// environment, or the platform's place. The XDG place is
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
		return appDir(os.UserCacheDir()) // %LocalAppData%: not for other machines
	case "darwin":
		return appDir(os.UserConfigDir()) // ~/Library/Application Support
	}
	// The specification wants relative paths to be ignored.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return appDir(dir, nil)
	}
	home, err := os.UserHomeDir()
	return appDir(filepath.Join(home, ".local", "state"), err)
}

func appDir(dir string, err error) (string, error) {
	if err != nil {
		return "", kindError{fmt.Errorf("no place for the state directory, name one with --state-dir: %w", err), errConfig}
	}
	return filepath.Join(dir, "gcsup"), nil
}
