package main

import (
	"crypto/sha256"
	"encoding/json"
	"runtime/debug"
	"testing"
)

func TestBillOfMaterials(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.2.0+incompatible", Sum: "h1:AAAA"},
			{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}},
	}
	text, err := billOfMaterials("gcsup_v1.0.0_linux_amd64", "v1.0.0", sha256.Sum256([]byte("binary")), info)
	if err != nil {
		t.Fatal(err)
	}
	var got bom
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"pkg:golang/std@1.26.8", "pkg:golang/example.com/a@v1.2.0+incompatible", "pkg:golang/example.com/fork@v1.0.1"}
	if len(got.Components) != len(want) {
		t.Fatalf("%d components, want %d", len(got.Components), len(want))
	}
	for i, c := range got.Components {
		if c.PURL != want[i] || got.Dependencies[0].DependsOn[i] != c.Ref {
			t.Errorf("component %d is %s, which the binary depends on as %s; want %s", i, c.PURL, got.Dependencies[0].DependsOn[i], want[i])
		}
	}
	again, err := billOfMaterials("gcsup_v1.0.0_linux_amd64", "v1.0.0", sha256.Sum256([]byte("binary")), info)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(text) {
		t.Error("two runs differ")
	}
}
