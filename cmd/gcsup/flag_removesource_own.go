package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"gcsup/chunk"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
)

// fileFlags are the flags with files that a command reads or writes itself. --manifest is not one
// of them, because its file depends on the shard.
var fileFlags = []string{"report", "log-file", "encryption-key-file", "credentials-file", "state-key-file", "files-from", "include-from", "exclude-from", configFlag}

// An ownPath is a file or a directory that the command uses itself. --remove-source must not
// remove it.
type ownPath struct {
	what  string // how the user knows it
	path  string // absolute, without symbolic links
	isDir bool   // all below it is the command's, too
}

// ownPaths are all of a command.
type ownPaths []ownPath

// ownPaths returns the files of the flags that were given, and the directories of the target.
func (f *targetFlags) ownPaths(given *pflag.FlagSet) (own ownPaths) {
	for _, name := range fileFlags {
		for _, path := range pathsOf(given.Lookup(name)) {
			own = own.with("--"+name, path, false)
		}
	}
	if path, err := process.ConfigFile(); err == nil && !given.Changed(configFlag) {
		if _, err := os.Stat(path); err == nil {
			own = own.with("the configuration file", path, false)
		}
	}
	if dir, err := stateDir(f.state.dir); err == nil {
		own = own.with("the state directory", dir, true)
	}
	if f.emulator.on {
		if dir, err := f.emulatorDir(); err == nil {
			own = own.with("the directory of --emulator", dir, true)
		}
	}
	return own
}

// pathsOf returns the files that a flag names. flag can be nil.
func pathsOf(flag *pflag.Flag) []string {
	if flag == nil {
		return nil
	}
	paths := []string{flag.Value.String()}
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		paths = list.GetSlice()
	}
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" || path == stdoutName })
}

func (own ownPaths) with(what, path string, isDir bool) ownPaths {
	if abs, err := filepath.Abs(path); err == nil {
		own = append(own, ownPath{what, withoutLinks(abs), isDir})
	}
	return own
}

// withoutLinks resolves the symbolic links in an absolute path, whose last elements need not exist.
func withoutLinks(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(withoutLinks(dir), filepath.Base(path))
}

// below reports whether path, which has no symbolic links, is the file or directory of info, or
// is below it.
func below(path string, info fs.FileInfo) bool {
	for {
		if at, err := os.Stat(path); err == nil && os.SameFile(at, info) {
			return true
		}
		dir := filepath.Dir(path)
		if dir == path {
			return false
		}
		path = dir
	}
}

// checkSources returns a usage error if a source is one of own, or has it below it.
func (own ownPaths) checkSources(sources []string) error {
	for _, source := range sources {
		info, err := os.Stat(source)
		if err != nil {
			continue // reported later
		}
		for _, o := range own {
			if below(o.path, info) {
				return exit.Usagef("--remove-source: %s is %s, which is in the source %s and would be removed: name another place for it", o.path, o.what, source)
			}
		}
		if err := own.accept(source, info); err != nil {
			return exit.WithKind(fmt.Errorf("--remove-source: %w", err), exit.ErrUsage)
		}
	}
	return nil
}

// accept refuses the file at path if it is one of own.
func (own ownPaths) accept(path string, info fs.FileInfo) error {
	for _, o := range own {
		at, err := os.Stat(o.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		}
		isOwn := os.SameFile(at, info)
		if o.isDir && !isOwn { // it takes two system calls for each element of the path
			abs, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			isOwn = below(withoutLinks(abs), at)
		}
		if isOwn {
			return fmt.Errorf("%s: %w that can be removed: it is used by this command as %s", path, chunk.ErrNotRegular, o.what)
		}
	}
	return nil
}
