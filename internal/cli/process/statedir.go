package process

import (
	"os"
	"path/filepath"
	"runtime"
)

// StateDirEnv names the environment variable with the directory.
const StateDirEnv = "GCSUP_STATE_DIR"

// StateDir returns the directory of the environment, or the platform's default. For
// XDG_STATE_HOME see https://specifications.freedesktop.org/basedir-spec/latest/.
func StateDir() (string, error) {
	if dir := os.Getenv(StateDirEnv); dir != "" {
		return filepath.Abs(dir)
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
		return "", err
	}
	return filepath.Join(dir, "gcsup"), nil
}
