package main

import (
	"github.com/spf13/pflag"

	"gcsup/upload"
)

// removeFlag is --remove-source.
type removeFlag bool

func (f *removeFlag) add(fs *pflag.FlagSet) {
	fs.BoolVar((*bool)(f), "remove-source", false, "remove each file when its object exists and has the same size and CRC32C")
}

// uploader returns up, which removes sources if the flag is set, except those in own.
func (f removeFlag) uploader(up *upload.Uploader, own ownPaths) (*upload.Uploader, error) {
	if !f {
		return up, nil
	}
	return up.With(upload.CallOptions{RemoveSource: true, Accept: own.accept})
}
