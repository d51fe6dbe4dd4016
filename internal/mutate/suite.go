package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// result is the result of the tests with a mutant.
type result string

const (
	killed   result = "killed"
	late     result = "timed out"
	survived result = "survived"
	invalid  result = "does not compile"
)

// suite runs the tests of packages.
type suite struct {
	tests []string      // directories
	tmp   string        // for files
	limit time.Duration // for the tests of one package
}

// overlay writes the files with which the go command replaces the file of a mutant.
func (s suite) overlay(m mutant) (string, error) {
	src, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed, list := filepath.Join(s.tmp, "mutant.go"), filepath.Join(s.tmp, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	src = slices.Concat(src[:m.off], []byte(m.with), src[m.end:])
	return list, errors.Join(os.WriteFile(changed, src, 0o600), os.WriteFile(list, text, 0o600))
}

// test runs the tests with a mutant until the first one fails. The zero mutant changes nothing.
func (s suite) test(m mutant) (result, error) {
	args := []string{"test", "-c", "-vet=off", "-o", s.tmp}
	if m.file != "" {
		overlay, err := s.overlay(m)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	for _, dir := range s.tests {
		args = append(args, "./"+dir)
	}
	if exec.Command("go", args...).Run() != nil {
		return invalid, nil
	}
	for _, dir := range s.tests {
		ctx, cancel := context.WithTimeout(context.Background(), s.limit)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(s.tmp, filepath.Base(dir)+".test"), "-test.paniconexit0", "-test.failfast")
		cmd.Dir = dir
		cmd.WaitDelay = time.Second // processes of the tests can have its output
		err := cmd.Run()
		if ctx.Err() != nil {
			return late, nil
		}
		if err != nil {
			return killed, nil
		}
	}
	return survived, nil
}
