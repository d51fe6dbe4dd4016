package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// tags leaves gRPC's part of cloud.google.com/go/storage out. grpcnotrace also
// leaves out golang.org/x/net/trace: it executes templates, and then the linker
// keeps every exported method. It saves 4.8 of 24.6 MB (linux/amd64).
const tags = "disable_grpc_modules,grpcnotrace"

// cyclonedx is the tool that writes bills of materials, pinned and outside go.mod.
const cyclonedx = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"

// binaries builds the programs for a platform, with their bills of materials. It adds the directories of the
// modules that they link to modules, by name and version.
func (b builder) binaries(out, target string, modules map[string]string) error {
	goos, arch, _ := strings.Cut(target, "/")
	// The caller's flags must not change the result. GOFLAGS must not be empty: an empty
	// value selects that of go env -w.
	env := []string{"GOFLAGS=-buildvcs=false", "GOWORK=off", "GOEXPERIMENT=", "CGO_ENABLED=0",
		"GOOS=" + goos, "GOARCH=" + arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off"}
	stamp := "-s -w -buildid= -X main.stampedVersion=" + b.version + " -X main.stampedRevision=" + b.revision
	for program, maxSize := range map[string]int64{"gcsup": 24_000_000, "fakegcs": 12_000_000} {
		path := b.path(out, program, target)
		binary := path + map[string]string{"windows": ".exe"}[goos]
		if _, err := output(".", env, "go", "build", "-trimpath", "-tags", tags, "-ldflags", stamp, "-o", binary, "./cmd/"+program); err != nil {
			return err
		}
		file, err := os.Stat(binary)
		if err != nil {
			return err
		}
		log.Printf("%10d  %s", file.Size(), file.Name())
		if file.Size() > maxSize {
			return fmt.Errorf("%s has %d bytes; the limit is %d", file.Name(), file.Size(), maxSize)
		}
		if err := writeBill(path+".cdx.json", binary, b.version); err != nil {
			return err
		}
		list, err := output(".", env, "go", "list", "-deps", "-tags", tags, "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/"+program)
		if err != nil {
			return err
		}
		for line := range strings.Lines(list) {
			if module, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				modules[module] = dir
			}
		}
	}
	return nil
}

// path returns the path of a program for a platform, without the ".exe" of Windows.
func (b builder) path(out, program, target string) string {
	return filepath.Join(out, fmt.Sprintf("%s_%s_%s", program, b.version, strings.ReplaceAll(target, "/", "_")))
}

// writeBill writes the modules of a binary to a file, as CycloneDX JSON. They depend on nothing but
// the binary and the version, so that the file can be reproduced.
func writeBill(file, binary, version string) error {
	text, err := output(".", nil, "go", "run", cyclonedx, "bin", "-json", "-std", "-notimestamp", "-noserial", "-version", version, binary)
	if err != nil {
		return err
	}
	var bill map[string]any
	if err := json.Unmarshal([]byte(text), &bill); err != nil {
		return fmt.Errorf("cyclonedx-gomod: %w", err)
	}
	// The tool lists itself with the hashes of its binary, which differ between machines.
	metadata, _ := bill["metadata"].(map[string]any)
	delete(metadata, "tools")
	content, _ := json.MarshalIndent(bill, "", "  ") // what was decoded can be encoded
	return os.WriteFile(file, append(content, '\n'), 0o666)
}
