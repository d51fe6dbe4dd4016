package configfile

import (
	"slices"

	"gcsup/internal/cli/cmdline"
)

// File has the values of flags in a file. The File of no file has none.
type File struct {
	Path string // "" if no file was read
	Why  string // why no file was read

	all      cmdline.Layer            // for all commands
	sections map[string]cmdline.Layer // by command
}

// None returns the File of no file.
func None(why string) *File { return &File{Why: why} }

// Layers returns the values for a command, those of its section first.
func (f *File) Layers(command string) []cmdline.Layer {
	return slices.DeleteFunc([]cmdline.Layer{f.sections[command], f.all}, func(l cmdline.Layer) bool { return len(l) == 0 })
}
