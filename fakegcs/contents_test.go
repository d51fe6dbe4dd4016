package fakegcs_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

func TestContents(t *testing.T) {
	for mode, opts := range map[string]*fakegcs.Options{"memory": {}, "directory": {Dir: t.TempDir()}} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, opts)
			for _, name := range []string{"b/2", "a", "b/1"} {
				o, err := w.gcs.PutObject(fakegcs.Object{Bucket: "bkt", Name: name, Metadata: map[string]string{"k": name}, Generation: 7}, strings.NewReader("content of "+name))
				if err != nil || o.Size != int64(11+len(name)) || o.Generation == 7 {
					t.Errorf("PutObject %s: %+v, %v", name, o, err)
				}
			}
			list, err := w.gcs.ListObjects("bkt", "b/")
			if err != nil || len(list) != 2 || list[0].Name != "b/1" || list[1].Metadata["k"] != "b/2" {
				t.Errorf("ListObjects: %+v, %v", list, err)
			}
			if a := w.do("GET", "/bkt/b/1", nil); a.body != "content of b/1" {
				t.Errorf("a request reads %q", a.body)
			}
			if err := w.gcs.DeleteObject("bkt", "b/1"); err != nil {
				t.Error(err)
			}
			if _, ok := w.gcs.Object("bkt", "b/1"); ok {
				t.Error("the object exists after DeleteObject")
			}
			if list, _ := w.gcs.ListObjects("bkt", ""); len(list) != 2 {
				t.Errorf("objects after DeleteObject: %+v", list)
			}
		})
	}
}

func TestContentsErrors(t *testing.T) {
	w := newWorld(t, nil)
	put := func(o fakegcs.Object) error {
		_, err := w.gcs.PutObject(o, strings.NewReader("x"))
		return err
	}
	_, listErr := w.gcs.ListObjects("none", "")
	for what, err := range map[string]error{
		"no bucket":     put(fakegcs.Object{Bucket: "none", Name: "x"}),
		"no name":       put(fakegcs.Object{Bucket: "bkt"}),
		"storage class": put(fakegcs.Object{Bucket: "bkt", Name: "x", StorageClass: "FAST"}),
		"metadata":      put(fakegcs.Object{Bucket: "bkt", Name: "x", Metadata: map[string]string{"k": strings.Repeat("v", 9000)}}),
		"list":          listErr,
		"delete":        w.gcs.DeleteObject("bkt", "none"),
		"bucket exists": w.gcs.CreateBucket(fakegcs.Bucket{Name: "bkt"}),
		"bucket name":   w.gcs.CreateBucket(fakegcs.Bucket{Name: "B"}),
		"bucket class":  w.gcs.CreateBucket(fakegcs.Bucket{Name: "other", StorageClass: "FAST"}),
		"retention":     w.gcs.CreateBucket(fakegcs.Bucket{Name: "other", Retention: time.Millisecond}),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "fakegcs: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Each field of Bucket has its effect on requests.
func TestCreateBucketFields(t *testing.T) {
	w := newWorld(t, nil)
	if err := w.gcs.CreateBucket(fakegcs.Bucket{
		Name: "full", Location: "europe-west6", StorageClass: "NEARLINE", Versioning: true, SoftDelete: 8 * 24 * time.Hour,
		Retention: time.Hour, EventBasedHold: true, UniformAccess: true, Labels: map[string]string{"team": "a"},
	}); err != nil {
		t.Fatal(err)
	}
	body := w.do("GET", "/storage/v1/b/full", nil).body
	for _, want := range []string{
		`"location":"EUROPE-WEST6"`, `"locationType":"region"`, `"storageClass":"NEARLINE"`, `"versioning":{"enabled":true}`,
		`"retentionDurationSeconds":"691200"`, `"retentionPeriod":"3600"`, `"defaultEventBasedHold":true`,
		`"uniformBucketLevelAccess":{"enabled":true,"lockedTime":`, `"labels":{"team":"a"}`,
	} {
		if !strings.Contains(strings.Join(strings.Fields(body), ""), want) {
			t.Errorf("the bucket has no %s:\n%s", want, body)
		}
	}
	w.createBucket(fakegcs.Bucket{Name: "payers", RequesterPays: true})
	w.want(400, "", "GET", "/storage/v1/b/payers/o", nil)
}

func TestSeed(t *testing.T) {
	dir := t.TempDir()
	opts := &fakegcs.Options{
		Dir:     dir,
		Buckets: []fakegcs.Bucket{{Name: "versioned", Versioning: true}},
		Objects: []fakegcs.ObjectContent{
			{Object: fakegcs.Object{Bucket: "versioned", Name: "x"}, Content: []byte("one")},
			{Object: fakegcs.Object{Bucket: "plain", Name: "y"}, Content: []byte("two")},
		},
		Seed: fstest.MapFS{
			"photos/2026/a.html": {Data: []byte("<p>")},
			"photos/.hidden":     {Data: []byte("h")},
			"empty":              {Mode: 0o755 | 1<<31},
			".git/config":        {Data: []byte("not seeded")},
			".DS_Store":          {Data: []byte("not seeded")},
		},
	}
	names := func(w *world) string {
		var all []string
		for _, bucket := range []string{"versioned", "plain", "photos", "empty"} {
			list, err := w.gcs.ListObjects(bucket, "")
			if err != nil {
				w.Fatal(err)
			}
			for _, o := range list {
				all = append(all, o.Bucket+"/"+o.Name)
			}
		}
		return strings.Join(all, " ")
	}
	seeded := "versioned/x plain/y photos/.hidden photos/2026/a.html"
	gcs, err := fakegcs.New(opts)
	require.NoError(t, err)
	w := &world{T: t, gcs: gcs}
	if got := names(w); got != seeded {
		t.Errorf("seeded %s, want %s", got, seeded)
	}
	if o, _ := gcs.Object("photos", "2026/a.html"); !strings.HasPrefix(o.ContentType, "text/html") {
		t.Errorf("content type %q", o.ContentType)
	}
	if _, err := gcs.PutObject(fakegcs.Object{Bucket: "plain", Name: "y"}, strings.NewReader("changed")); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, gcs.DeleteObject("photos", ".hidden"))
	require.NoError(t, gcs.Close())

	// The next server on the directory keeps what has changed, and only a reset undoes it.
	if gcs, err = fakegcs.New(opts); err != nil {
		t.Fatal(err)
	}
	defer gcs.Close()
	w.gcs = gcs
	if content, err := gcs.ReadObject("plain", "y"); string(content) != "changed" || err != nil {
		t.Errorf("after a restart: %q, %v", content, err)
	}
	if got, want := names(w), strings.Replace(seeded, " photos/.hidden", "", 1); got != want {
		t.Errorf("after a restart: %s, want %s", got, want)
	}
	require.NoError(t, gcs.Reset())
	if content, err := gcs.ReadObject("plain", "y"); string(content) != "two" || err != nil {
		t.Errorf("after a reset: %q, %v", content, err)
	}
	if got := names(w); got != seeded {
		t.Errorf("after a reset: %s, want %s", got, seeded)
	}
}

func TestSeedErrors(t *testing.T) {
	for want, opts := range map[string]*fakegcs.Options{
		"loose.txt is not a folder":         {Seed: fstest.MapFS{"loose.txt": {}}},
		"Invalid bucket name: 'Upper'":      {Seed: fstest.MapFS{"Upper/x": {}}},
		"link is not a regular file":        {Seed: fstest.MapFS{"bkt/link": {Mode: 1 << 27, Data: []byte("elsewhere")}, "bkt/elsewhere/x": {}}},
		`two buckets have the name "twice"`: {Buckets: []fakegcs.Bucket{{Name: "twice"}, {Name: "twice"}}},
		"Invalid bucket name: ''":           {Objects: []fakegcs.ObjectContent{{Object: fakegcs.Object{Name: "x"}}}},
	} {
		if gcs, err := fakegcs.New(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
			if err == nil {
				gcs.Close()
			}
		}
	}
}
