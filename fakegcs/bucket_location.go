package fakegcs

import (
	"slices"
	"strings"
)

// placement has the two regions of a configurable dual-region, or the zone of a zonal bucket.
// https://cloud.google.com/storage/docs/locations
type placement struct {
	DataLocations []string `json:"dataLocations"`
}

// locate checks where the bucket is, and sets its location type. was is nil for a new bucket.
func (r *bucketResource) locate(was *bucketResource) *apiError {
	p := r.CustomPlacement
	if p == nil {
		if was != nil && was.CustomPlacement != nil {
			return errPlacementChanges()
		}
		r.LocationType = locationType(r.Location)
		return nil
	}
	for i, name := range p.DataLocations {
		p.DataLocations[i] = strings.ToUpper(name)
	}
	switch {
	case was != nil && (was.CustomPlacement == nil || !slices.Equal(was.CustomPlacement.DataLocations, p.DataLocations)):
		return errPlacementChanges()
	case len(p.DataLocations) == 1 && r.StorageClass == "RAPID":
		r.LocationType = "zone"
	case len(p.DataLocations) == 2 && p.DataLocations[0] != p.DataLocations[1]:
		r.LocationType = "dual-region"
	default:
		return invalid("Invalid value for customPlacementConfig: it must have two regions, or one zone if the storage class is RAPID.")
	}
	return nil
}

func errPlacementChanges() *apiError {
	return invalid("Invalid value for customPlacementConfig: it can be set only when the bucket is created.")
}

// locationType returns the type of a location. Regions are not checked, because new ones are added.
func locationType(location string) string {
	switch location {
	case "US", "EU", "ASIA":
		return "multi-region"
	case "NAM4", "EUR4", "EUR5", "EUR7", "EUR8", "ASIA1":
		return "dual-region"
	}
	return "region"
}
