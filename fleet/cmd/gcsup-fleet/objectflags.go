package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gcsup/internal/failure"
	"gcsup/session"
)

// objectFlags set the attributes of the objects, as those of gcsup cp.
type objectFlags struct {
	settings session.Spec
	metadata []string
}

func (f *objectFlags) add(fs *pflag.FlagSet) {
	s := &f.settings
	fs.StringVar(&s.ContentType, "content-type", "", "content `TYPE` of the objects (default: by the name's extension, else by the first 512 bytes)")
	fs.StringVar(&s.ContentEncoding, "content-encoding", "", "`ENCODING` in which the sources are, such as gzip")
	fs.StringVar(&s.ContentDisposition, "content-disposition", "", "`DISPOSITION` for browsers")
	fs.StringVar(&s.ContentLanguage, "content-language", "", "`LANGUAGE` of the content, such as en")
	fs.StringVar(&s.CacheControl, "cache-control", "", "`DIRECTIVES` for caches, such as 'public, max-age=3600'")
	fs.StringVar(&s.StorageClass, "storage-class", "", "storage `CLASS` of the objects (default: the bucket's)")
	fs.StringVar(&s.PredefinedACL, "predefined-acl", "", "access control list of the objects, such as `publicRead`")
	fs.StringVar(&s.KMSKeyName, "kms-key", "", "encrypt the objects with this Cloud KMS `KEY`")
	fs.StringVar(&s.UserProject, "user-project", "", "bill this `PROJECT` if the requester pays for the bucket")
	fs.BoolVar(&s.TemporaryHold, "temporary-hold", false, "place a temporary hold on the objects")
	fs.BoolVar(&s.EventBasedHold, "event-based-hold", false, "place an event-based hold on the objects")
	fs.StringArrayVar(&f.metadata, "metadata", nil, "custom metadata `KEY=VALUE`; repeat the flag for more")
}

// spec returns the template of the objects, without their names.
func (f *objectFlags) spec() (session.Spec, error) {
	s := f.settings
	s.StorageClass = strings.ToUpper(s.StorageClass)
	if s.PredefinedACL != "" && !slices.Contains(session.PredefinedACLs(), s.PredefinedACL) {
		return s, failure.Usagef("--predefined-acl %s: want one of %s", s.PredefinedACL, strings.Join(session.PredefinedACLs(), ", "))
	}
	for _, pair := range f.metadata {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return s, failure.Usagef("--metadata %q: want KEY=VALUE", pair)
		}
		if s.Metadata == nil {
			s.Metadata = map[string]string{}
		}
		if _, twice := s.Metadata[key]; twice {
			return s, failure.Usagef("--metadata: the key %q is given twice", key)
		}
		s.Metadata[key] = value
	}
	named := s
	named.Bucket, named.Object = "bucket", "object"
	if err := named.Validate(); err != nil {
		return s, fmt.Errorf("settings of the objects: %w", err)
	}
	return s, nil
}
