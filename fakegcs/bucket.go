package fakegcs

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"gcsup/fakegcs/internal/blob"
)

// projectNumber is the number of the project that has all buckets.
const projectNumber = "1"

// bucketResource is a bucket's metadata: the fields of the API's resource that the
// server keeps.
// https://cloud.google.com/storage/docs/json_api/v1/buckets#resource
type bucketResource struct {
	Kind                  string            `json:"kind"`
	ID                    string            `json:"id"`
	SelfLink              string            `json:"selfLink,omitempty"`
	Name                  string            `json:"name"`
	ProjectNumber         string            `json:"projectNumber"`
	Location              string            `json:"location"`
	LocationType          string            `json:"locationType"`
	CustomPlacement       *placement        `json:"customPlacementConfig,omitempty"`
	StorageClass          string            `json:"storageClass"`
	Metageneration        int64             `json:"metageneration,string"`
	Etag                  string            `json:"etag"`
	TimeCreated           timestamp         `json:"timeCreated"`
	Updated               timestamp         `json:"updated"`
	DefaultEventBasedHold bool              `json:"defaultEventBasedHold,omitempty"`
	Versioning            *versioning       `json:"versioning,omitempty"`
	RetentionPolicy       *retentionPolicy  `json:"retentionPolicy,omitempty"`
	SoftDeletePolicy      *softDeletePolicy `json:"softDeletePolicy,omitempty"`
	IamConfiguration      iamConfiguration  `json:"iamConfiguration"`
	Labels                map[string]string `json:"labels,omitempty"`
	Lifecycle             *lifecycle        `json:"lifecycle,omitempty"`
	CORS                  []corsRule        `json:"cors,omitempty"`
	Website               *website          `json:"website,omitempty"`
	Billing               *billing          `json:"billing,omitempty"`
	Logging               *logging          `json:"logging,omitempty"`
	Encryption            *encryption       `json:"encryption,omitempty"`
	RPO                   string            `json:"rpo,omitempty"`
	Autoclass             *autoclass        `json:"autoclass,omitempty"`
	ObjectRetention       *objectRetention  `json:"objectRetention,omitempty"`
	HierarchicalNamespace *namespace        `json:"hierarchicalNamespace,omitempty"`
	ACL                   []ACLRule         `json:"acl,omitzero"`              // nil for that of a new bucket
	DefaultObjectACL      []ACLRule         `json:"defaultObjectAcl,omitzero"` // nil for that of a new bucket
}

type versioning struct {
	Enabled bool `json:"enabled"`
}

type retentionPolicy struct {
	RetentionPeriod int64Text `json:"retentionPeriod"` // seconds
	EffectiveTime   timestamp `json:"effectiveTime"`
	IsLocked        bool      `json:"isLocked,omitempty"`
}

// objectRetention permits the retention of single objects. This server keeps it, and
// permits that in every bucket.
type objectRetention struct {
	Mode string `json:"mode"`
}

type softDeletePolicy struct {
	RetentionDurationSeconds int64Text `json:"retentionDurationSeconds"`
	EffectiveTime            timestamp `json:"effectiveTime"`
}

// bucketRecord is the record of a bucket in the directory.
type bucketRecord struct {
	bucketResource
	Notifications []notification `json:"notifications,omitempty"`
	Policy        *iamPolicy     `json:"policy,omitempty"`  // nil for that of a new bucket
	Creator       string         `json:"creator,omitempty"` // the principal; "" if unknown

	Folders        folders `json:"folders,omitempty"`        // of a bucket with hierarchical namespace
	ManagedFolders folders `json:"managedFolders,omitempty"` // never changed in place, like Folders
}

// bucket is a bucket with its objects. [store.mu] guards all of it.
type bucket struct {
	bucketRecord
	objects map[string]*generations // by name; all names with a generation of any kind
	names   nameList                // of objects
	expires time.Time               // when the first soft-deleted generation expires; zero if there is none
}

// generations has the generations of one object name.
type generations struct {
	live *version
	old  []*version // noncurrent, oldest first
	soft []*version // soft-deleted, oldest first
}

// version is one generation of an object. Object is never changed in place: a
// patch replaces it, so that a reader of the pointer needs no lock.
type version struct {
	*Object
	blob     *blob.Blob
	upload   string    // the session or multipart upload that made it; "" for others
	retained time.Time // when its retention period begins, if the bucket has one
}

// with returns v with other metadata.
func (v *version) with(o *Object) *version {
	c := *v
	c.Object = o
	return &c
}

func newBucket(name string, now time.Time) *bucket {
	b := &bucket{
		bucketRecord: bucketRecord{bucketResource: bucketResource{
			Kind: "storage#bucket", ID: name, Name: name, ProjectNumber: projectNumber,
			Location: "US", LocationType: "multi-region", StorageClass: "STANDARD",
			IamConfiguration: newIAMConfiguration, Metageneration: 1, TimeCreated: timestamp{now}, Updated: timestamp{now},
		}},
		objects: map[string]*generations{},
	}
	b.sign()
	return b
}

func (b *bucket) sign() {
	o := Object{Generation: b.TimeCreated.UnixMicro(), Metageneration: b.Metageneration}
	o.sign()
	b.Etag = o.Etag
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]+[a-z0-9]$`)

// checkBucketName checks the length and the characters of a name,
// https://cloud.google.com/storage/docs/buckets#naming.
func checkBucketName(name string) *apiError {
	if len(name) > 222 || !bucketName.MatchString(name) || strings.Contains(name, "..") { // {1,220} would take 3 ms of each start of gcsup
		return refuse(http.StatusBadRequest, "invalidBucketName", "Invalid bucket name: '%s'. It must have 3 to 222 lower-case letters, digits, dots, dashes and underscores, and begin and end with a letter or digit.", name)
	}
	return nil
}

func (b *bucket) versioned() bool { return b.Versioning != nil && b.Versioning.Enabled }

// softDeleteFor returns how long a deleted object can be restored; 0 disables it.
func (b *bucket) softDeleteFor() time.Duration {
	if b.SoftDeletePolicy == nil {
		return 0
	}
	return time.Duration(b.SoftDeletePolicy.RetentionDurationSeconds) * time.Second
}

// live returns the current generation of an object, or nil.
func (b *bucket) live(name string) *version {
	if g := b.objects[name]; g != nil {
		return g.live
	}
	return nil
}

// version finds a generation that is live or noncurrent; 0 is the live one.
func (b *bucket) version(name string, generation int64) *version {
	g := b.objects[name]
	if g == nil {
		return nil
	}
	if generation == 0 || g.live != nil && g.live.Generation == generation {
		return g.live
	}
	for _, v := range g.old {
		if v.Generation == generation {
			return v
		}
	}
	return nil
}

// addSoft adds the soft-deleted generation v.
func (b *bucket) addSoft(v *version) {
	g := b.at(v.Name)
	g.soft = append(g.soft, v)
	if b.expires.IsZero() || v.HardDeleteTime.Before(b.expires) {
		b.expires = v.HardDeleteTime
	}
}

// at returns the generations of a name. It adds the name if necessary.
func (b *bucket) at(name string) *generations {
	g := b.objects[name]
	if g == nil {
		g = &generations{}
		b.objects[name] = g
		b.names.add(name)
	}
	return g
}

// sortedNames returns the names in their order. The next call may change the list.
func (b *bucket) sortedNames() []string {
	return b.names.sort(func(name string) bool { return b.objects[name] != nil })
}

// tidy removes a name that has no generation left.
func (b *bucket) tidy(name string) {
	g := b.objects[name]
	if g == nil || g.live != nil || len(g.old) > 0 || len(g.soft) > 0 {
		return
	}
	delete(b.objects, name)
	if b.names.remove(); b.names.removed > len(b.objects)+1000 {
		b.sortedNames()
	}
}

// checkRetire returns an error if a hold or retention forbids that the live generation
// v is replaced or deleted. In a bucket with versioning only a hold does, because v
// becomes noncurrent, https://cloud.google.com/storage/docs/bucket-lock.
func (b *bucket) checkRetire(v *version, now time.Time) *apiError {
	if b.versioned() {
		return held(v)
	}
	return protected(v, now)
}
