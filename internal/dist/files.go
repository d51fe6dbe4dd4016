package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// writeLicenses writes the licenses and notices of gcsup, Go and modules to a file. Most of them require that a
// binary is distributed with them. modules has the directories by name.
func writeLicenses(file string, modules map[string]string) error {
	root, err := output(".", nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	toolchain := "Go " + runtime.Version()
	dirs := map[string]string{"gcsup": ".", toolchain: root}
	maps.Copy(dirs, modules)
	var text bytes.Buffer
	for _, name := range append([]string{"gcsup", toolchain}, slices.Sorted(maps.Keys(modules))...) {
		dir := dirs[name]
		var paths []string
		for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "NOTICE*"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is valid
			paths = append(paths, found...)
		}
		if len(paths) == 0 {
			return fmt.Errorf("%s: no license in %s", name, dir)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "==== %s: %s\n\n%s\n\n", name, filepath.Base(path), bytes.TrimSpace(content))
		}
	}
	return os.WriteFile(file, text.Bytes(), 0o666)
}

// writeSums writes the checksums of all files in dir to SHA256SUMS, in the format
// of sha256sum. It removes the signature of earlier ones.
func writeSums(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, signatureName)); err != nil {
		return err
	}
	var sums bytes.Buffer
	tree := os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == sumsName {
			return err
		}
		content, err := fs.ReadFile(tree, path)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), path)
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sumsName), sums.Bytes(), 0o666)
}
