package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// TestDockerfiles checks what the images have in common: they are built with the Go of go.mod, have
// nothing but one static program and do not run it as root. gcsup connects to the service, and has
// the certificates for that.
func TestDockerfiles(t *testing.T) {
	module, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	_, language, _ := strings.Cut(string(module), "\ngo ")
	language, _, _ = strings.Cut(language, ".0\n")
	for name, more := range map[string][]string{
		"gcsup": {
			"COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt",
			"COPY --from=build --chown=65532:65532 /state /state",
			"ENV GCSUP_STATE_DIR=/state",
		},
		"fakegcs": nil,
	} {
		text, err := os.ReadFile("../../cmd/" + name + "/Dockerfile")
		require.NoError(t, err)
		lines := strings.Split(string(text), "\n")
		want := append([]string{
			"FROM golang:" + language + " AS build", "FROM scratch", "USER 65532:65532",
			"COPY --from=build /" + name + " /" + name,
			"#   docker build -t " + name + " -f cmd/" + name + "/Dockerfile .",
		}, more...)
		for _, line := range want {
			if !slices.Contains(lines, line) {
				t.Errorf("cmd/%s/Dockerfile has no line %q", name, line)
			}
		}
		if !strings.Contains(string(text), "CGO_ENABLED=0 go build -trimpath ") {
			t.Errorf("cmd/%s/Dockerfile builds no static program", name)
		}
		if name == "gcsup" && !strings.Contains(string(text), " -tags "+tags+" ") {
			t.Errorf("cmd/%s/Dockerfile does not have the tags of a release", name)
		}
	}
}
