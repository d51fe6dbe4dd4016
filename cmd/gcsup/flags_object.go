package main

import (
	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/session"
)

// objectFlags set the attributes of the objects, and how they are uploaded.
type objectFlags struct {
	attributes    cmdline.ObjectFlags
	key           keyFlags
	preservePOSIX bool
	gzip          gzipFlag
}

func (f *objectFlags) add(fs *pflag.FlagSet) {
	f.addService(fs)
	fs.BoolVarP(&f.preservePOSIX, "preserve-posix", "P", false, "write time, owner and permissions of each file to the metadata of its object")
}

// addService adds the flags of a command whose files are not part of a batch.
func (f *objectFlags) addService(fs *pflag.FlagSet) {
	f.attributes.Add(fs)
	fs.Var(&f.gzip, "gzip", "compress files whose names end in one of these extensions, separated by commas, such as txt,csv; or all files: all")
	f.key.add(fs, "encrypt the objects with the key")
}

// userProject points to the project that is billed.
func (f *objectFlags) userProject() *string { return f.attributes.UserProject() }

// spec returns the template of the objects, without their names. stream is true for
// standard input.
func (f *objectFlags) spec(stream bool) (session.Spec, error) {
	s, err := f.attributes.Spec()
	switch {
	case err != nil:
		return s, err
	case stream && f.preservePOSIX:
		return s, exit.Usagef("--preserve-posix: a stream is not a file and has no attributes")
	}
	if s.EncryptionKey, err = f.key.read(); err != nil {
		return s, err
	}
	if s.KMSKeyName != "" && !s.EncryptionKey.IsZero() {
		return s, exit.Usagef("--kms-key and %s exclude each other", f.key.name())
	}
	return s, nil
}
