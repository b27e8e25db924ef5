"""Protocol surfaces. A door decodes its wire into core values and encodes core events back; nothing else."""
