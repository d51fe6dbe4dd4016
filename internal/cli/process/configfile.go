package process

import (
	"os"
	"path/filepath"
	"runtime"
)

// ConfigFile returns the path of the user's file with defaults for flags. For XDG_CONFIG_HOME see
// https://specifications.freedesktop.org/basedir-spec/latest/.
func ConfigFile() (string, error) {
	dir, err := configDir()
	return filepath.Join(dir, "config.yaml"), err
}

func configDir() (string, error) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return appDir(os.UserConfigDir()) // %AppData% or ~/Library/Application Support
	}
	// The specification requires that relative paths are ignored.
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return appDir(dir, nil)
	}
	home, err := os.UserHomeDir()
	return appDir(filepath.Join(home, ".config"), err)
}
