addEventListener('connect', () => {});
