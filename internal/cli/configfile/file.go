package configfile

import (
	"maps"
	"slices"
	"strings"

	"gcsup/internal/cli/cmdline"
)

// File has the values of flags in a file. The File of no file has none.
type File struct {
	Path string // "" if no file was read
	Why  string // why no file was read
	Risk error  // why the file should not be used, or nil

	all      cmdline.Layer            // for all commands
	sections map[string]cmdline.Layer // by command
}

// None returns the File of no file.
func None(why string) *File { return &File{Why: why} }

// Layers returns the values for a command, those of its section first.
func (f *File) Layers(command string) []cmdline.Layer {
	return slices.DeleteFunc([]cmdline.Layer{f.sections[command], f.all}, func(l cmdline.Layer) bool { return len(l) == 0 })
}

// Contents lists the flags with values, for people.
func (f *File) Contents() string {
	var parts []string
	add := func(where string, layer cmdline.Layer) {
		if len(layer) > 0 {
			parts = append(parts, where+" ("+strings.Join(slices.Sorted(maps.Keys(layer)), ", ")+")")
		}
	}
	add("all commands", f.all)
	for _, command := range slices.Sorted(maps.Keys(f.sections)) {
		add(command, f.sections[command])
	}
	if len(parts) == 0 {
		return "no values"
	}
	return "values for " + strings.Join(parts, ", ")
}
