package cmdline

import (
	"errors"
	"fmt"
	"mime"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/exit"
	"gcsup/internal/objectmeta"
	"gcsup/session"
)

// ObjectFlags set the attributes of objects.
type ObjectFlags struct {
	spec                         session.Spec // values that need no check of their own
	metadata, contexts, acl      []string
	customTime, retainUntil      timeFlag
	storageClass                 classFlag
	predefinedACL, retentionMode enumFlag
}

// Add adds the flags to those of a command.
func (f *ObjectFlags) Add(fs *pflag.FlagSet) {
	s := &f.spec
	f.predefinedACL.values, f.retentionMode.values = objectmeta.PredefinedACLs, []string{session.RetentionLocked, session.RetentionUnlocked}
	fs.StringVar(&s.ContentType, "content-type", "", "content `TYPE` of the objects (default: by the name's extension, else by the first 512 bytes)")
	fs.StringVar(&s.ContentEncoding, "content-encoding", "", "`ENCODING` of the sources, such as gzip")
	fs.StringVar(&s.ContentDisposition, "content-disposition", "", "`DISPOSITION` for browsers, such as 'attachment; filename=report.pdf'")
	fs.StringVar(&s.ContentLanguage, "content-language", "", "`LANGUAGE` of the content, such as en")
	fs.StringVar(&s.CacheControl, "cache-control", "", "`DIRECTIVES` for caches, such as 'public, max-age=3600'")
	fs.StringArrayVar(&f.metadata, "metadata", nil, "custom metadata `KEY=VALUE`; repeat the flag for more")
	fs.StringArrayVar(&f.contexts, "context", nil, "object context `KEY=VALUE`; repeat the flag for more")
	fs.Var(&f.customTime, "custom-time", "custom time of the objects, such as 2026-01-31T12:00:00Z")
	fs.Var(&f.storageClass, "storage-class", "storage class of the objects (default: the bucket's)")
	fs.Var(&f.predefinedACL, "predefined-acl", "access control list of the objects, such as publicRead")
	fs.StringArrayVar(&f.acl, "acl", nil, "access `ENTITY=ROLE`, such as user-jane@example.com=READER; repeat the flag for more")
	fs.BoolVar(&s.TemporaryHold, "temporary-hold", false, "place a temporary hold on the objects")
	fs.BoolVar(&s.EventBasedHold, "event-based-hold", false, "place an event-based hold on the objects")
	fs.Var(&f.retentionMode, "retention-mode", "retain the objects until --retain-until: Locked, which cannot be shortened, or Unlocked")
	fs.Var(&f.retainUntil, "retain-until", "time until which the objects are retained, such as 2030-01-31T12:00:00Z")
	fs.StringVar(&s.KMSKeyName, "kms-key", "", "encrypt the objects with this customer-managed `KEY` (CMEK): projects/P/locations/L/keyRings/R/cryptoKeys/K")
	fs.StringVar(&s.UserProject, "user-project", "", "bill this `PROJECT` if the requester pays for the bucket; saved with the upload")
	Common(fs, "content-type")
}

// UserProject points to the value of --user-project.
func (f *ObjectFlags) UserProject() *string { return &f.spec.UserProject }

// ObjectExclusive are the flags that exclude each other.
var ObjectExclusive = []string{"acl", "predefined-acl"}

// timeFlag is a time in the format of RFC 3339.
type timeFlag struct{ time.Time }

func (f *timeFlag) Type() string { return "TIME" }

func (f *timeFlag) String() string {
	if f.IsZero() {
		return ""
	}
	return f.Format(time.RFC3339Nano)
}

func (f *timeFlag) Set(text string) error {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.IsZero() {
		return fmt.Errorf("want a time such as 2026-01-31T12:00:00Z or 2026-01-31T12:00:00+01:00")
	}
	f.Time = t.UTC().Truncate(time.Microsecond) // the precision of the service
	return nil
}

// enumFlag is a flag with a fixed set of values.
type enumFlag struct {
	value  string
	values []string
}

func (f *enumFlag) Type() string     { return "VALUE" }
func (f *enumFlag) String() string   { return f.value }
func (f *enumFlag) Values() []string { return f.values } // for completion

func (f *enumFlag) Set(text string) error {
	if !slices.Contains(f.values, text) {
		return fmt.Errorf("want %s", orList(f.values))
	}
	f.value = text
	return nil
}

// orList returns words as "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// The storage classes, and those that the service accepts for old programs.
// https://cloud.google.com/storage/docs/storage-classes
var (
	storageClasses    = []string{"STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"}
	oldStorageClasses = []string{"MULTI_REGIONAL", "REGIONAL", "DURABLE_REDUCED_AVAILABILITY"}
)

// classFlag is a storage class, in upper or lower case.
type classFlag string

func (f *classFlag) Type() string     { return "CLASS" }
func (f *classFlag) String() string   { return string(*f) }
func (f *classFlag) Values() []string { return storageClasses } // for completion

func (f *classFlag) Set(text string) error {
	class := strings.ToUpper(text)
	if class == "RAPID" {
		return errors.New("the service accepts this class only over gRPC, in a zonal bucket; this program uses the JSON API")
	}
	if !slices.Contains(storageClasses, class) && !slices.Contains(oldStorageClasses, class) {
		return fmt.Errorf("want %s", orList(storageClasses))
	}
	*f = classFlag(class)
	return nil
}

var (
	kmsKeyName   = regexp.MustCompile(`^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$`)
	languageTags = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*(, ?[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*)*$`)
)

// Spec returns the template of the objects, without their names. It refuses values
// that the service would refuse.
func (f *ObjectFlags) Spec() (session.Spec, error) {
	s := f.spec
	s.CustomTime, s.StorageClass, s.PredefinedACL = f.customTime.Time, string(f.storageClass), f.predefinedACL.value
	mode, until := f.retentionMode.value, f.retainUntil.Time
	switch {
	case s.ContentType != "" && !validType(s.ContentType):
		return s, exit.Usagef("--content-type %q: want TYPE/SUBTYPE, such as text/csv", s.ContentType)
	case s.ContentLanguage != "" && (!languageTags.MatchString(s.ContentLanguage) || len(s.ContentLanguage) > 100):
		return s, exit.Usagef("--content-language %q: want a language tag such as en or pt-BR", s.ContentLanguage)
	case s.KMSKeyName != "" && !kmsKeyName.MatchString(s.KMSKeyName):
		return s, exit.Usagef("--kms-key %q: want projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY", s.KMSKeyName)
	case (mode == "") != until.IsZero():
		return s, exit.Usagef("--retention-mode and --retain-until need each other")
	case mode != "" && !until.After(time.Now()):
		return s, exit.Usagef("--retain-until %s: want a time in the future", &f.retainUntil)
	}
	if mode != "" {
		s.Retention = &session.Retention{Mode: mode, RetainUntil: until}
	}
	for _, pair := range f.metadata {
		key, value, ok := strings.Cut(pair, "=")
		switch {
		case !ok || key == "":
			return s, exit.Usagef("--metadata %q: want KEY=VALUE", pair)
		case s.Metadata == nil:
			s.Metadata = map[string]string{}
		}
		if _, twice := s.Metadata[key]; twice {
			return s, exit.Usagef("--metadata: the key %q is given twice", key)
		}
		s.Metadata[key] = value
	}
	if err := f.addContexts(&s); err != nil {
		return s, err
	}
	if err := f.addACL(&s); err != nil {
		return s, err
	}
	// Names that are always valid: only the attributes are checked here.
	named := s
	named.Bucket, named.Object = "bucket", "object"
	return s, named.Validate()
}

// addContexts adds the values of --context.
func (f *ObjectFlags) addContexts(s *session.Spec) error {
	for _, pair := range f.contexts {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return exit.Usagef("--context %q: want KEY=VALUE", pair)
		}
		if s.Contexts == nil {
			s.Contexts = &session.ObjectContexts{Custom: map[string]session.ObjectCustomContextPayload{}}
		}
		if _, twice := s.Contexts.Custom[key]; twice {
			return exit.Usagef("--context: the key %q is given twice", key)
		}
		s.Contexts.Custom[key] = session.ObjectCustomContextPayload{Value: value}
	}
	return nil
}

// aclEntity matches the entities of https://cloud.google.com/storage/docs/json_api/v1/objectAccessControls.
var aclEntity = regexp.MustCompile(`^(?:(?:user|group|domain|project-(?:owners|editors|viewers))-.+|allUsers|allAuthenticatedUsers)$`)

// addACL adds the values of --acl. The role may be in lower case.
func (f *ObjectFlags) addACL(s *session.Spec) error {
	for _, pair := range f.acl {
		i := strings.LastIndexByte(pair, '=')
		if i <= 0 {
			return exit.Usagef("--acl %q: want ENTITY=ROLE, such as user-jane@example.com=READER or allUsers=READER; --predefined-acl has lists such as publicRead", pair)
		}
		entity := pair[:i]
		switch {
		case !aclEntity.MatchString(entity):
			return exit.Usagef("--acl %q: want user-EMAIL, group-EMAIL, domain-DOMAIN, project-TEAM-PROJECT (TEAM is owners, editors or viewers), allUsers or allAuthenticatedUsers", entity)
		case slices.ContainsFunc(s.ACL, func(r session.ACLRule) bool { return r.Entity == entity }):
			return exit.Usagef("--acl: the entity %q is given twice", entity)
		}
		s.ACL = append(s.ACL, session.ACLRule{Entity: entity, Role: strings.ToUpper(pair[i+1:])})
	}
	return nil
}

// validType reports whether text is a media type.
func validType(text string) bool {
	t, _, err := mime.ParseMediaType(text)
	major, minor, ok := strings.Cut(t, "/")
	return err == nil && ok && major != "" && minor != ""
}
