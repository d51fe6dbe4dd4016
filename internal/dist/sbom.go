package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
)

// The types are the part of CycloneDX 1.6 that describes a Go binary.
// https://cyclonedx.org/docs/1.6/json/
type (
	bom struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PURL       string     `json:"purl,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// billOfMaterials returns the modules of a binary as CycloneDX JSON. It has no
// time, and its serial number depends on the binary only, so that it can be
// reproduced.
func billOfMaterials(name, version string, sum [sha256.Size]byte, info *debug.BuildInfo) ([]byte, error) {
	id := sha256.Sum256(append([]byte("CycloneDX serial number\n"), sum[:]...))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8, RFC 9562
	main := component{Type: "application", Ref: name, Name: "gcsup", Version: version,
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}}
	for _, s := range info.Settings {
		main.Properties = append(main.Properties, property{"go:build:" + s.Key, s.Value})
	}
	b := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		Serial:   fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16]),
		Metadata: metadata{main},
	}
	all := dependency{Ref: name}
	add := func(path, version, sum string) {
		purl := packageURL(path, version)
		c := component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
		if sum != "" {
			c.Properties = []property{{"go.sum", sum}}
		}
		b.Components = append(b.Components, c)
		all.DependsOn = append(all.DependsOn, purl)
	}
	add("std", strings.TrimPrefix(info.GoVersion, "go"), "")
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(m.Path, m.Version, m.Sum)
	}
	b.Dependencies = []dependency{all}

	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(b)
	return out.Bytes(), err
}

// packageURL returns the package URL of a module, as
// https://github.com/package-url/purl-spec defines it.
func packageURL(path, version string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "pkg:golang/" + strings.Join(parts, "/") + "@" + url.PathEscape(version)
}
